"""Running the protocol against OpenAI-compatible servers, so that no kill loses or repeats a draw."""
