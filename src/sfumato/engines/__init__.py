"""Where the rows live. An algorithm asks an engine to grow a tree over them and never sees how."""
