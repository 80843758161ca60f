"""What a check asks of a state space: anomalies, liveness, equality of two systems."""
