"""Views: HTML and plain text made from records. Nothing here imports Jupyter."""
