"""Forms of work: what is shown of an item, which fields an answer has, and when a golden answer is right."""
