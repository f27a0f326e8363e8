"""Methods that give each attribute one cut, shared by all rows, and push it down step by step."""
