"""What operators order and ask. It is carried out here, sent down, and passed on."""
