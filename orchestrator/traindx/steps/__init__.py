"""What each phase of a session does to the world; the order of the phases is the state machine's."""
