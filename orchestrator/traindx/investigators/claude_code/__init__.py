"""What the Claude investigator is made of: questions and answers over the Agent SDK, read-only, checked and bounded."""
