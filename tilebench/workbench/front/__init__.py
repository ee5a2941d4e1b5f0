"""What a browser draws: plain data made from a picture, the script that draws it, the widget around both."""
