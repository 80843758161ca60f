"""Questions about a state space: anomalies, liveness, trace equivalence."""
