"""What Python programs need to work with fp8."""
