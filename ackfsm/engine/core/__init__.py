"""The broker, links and client libraries, run by the tables; knows nothing of the JMS face around it."""
