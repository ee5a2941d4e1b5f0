"""The notebook side: magic, views and controls. Views make HTML and text from plain records."""
