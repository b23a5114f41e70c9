"""What things cost: `make bench` takes the ratios that are kept, the others are run by hand."""
