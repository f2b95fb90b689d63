"""What is known of the field's libraries, as tables: data files that any reader of a program may ask."""
