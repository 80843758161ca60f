"""Messages a second that a configuration can carry: in closed form (``timing``), and simulated (``simulation``)."""
