"""What an audit will cost: tokens, FLOP, bytes, time and money, before anything is scored."""
