"""Annotation campaigns: people judge images and captions in the browser, blind and several per item."""
