"""Contact and impact: geometry, the laws of Featherstone 2008 chapter 11, compliant surfaces, time steps."""
