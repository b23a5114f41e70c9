"""What is repeated to measure something; run from a checkout, and no part of the package."""
