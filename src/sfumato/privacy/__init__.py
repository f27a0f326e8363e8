"""What a differentially private method needs of the world: a ledger, and mechanisms to draw with."""
