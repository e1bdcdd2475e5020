"""Input from outside the program, checked before use; errors name the file and the field or row."""
