module ackfsm/verifier

go 1.19
