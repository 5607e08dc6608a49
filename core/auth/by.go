package auth

// Signatures of operations whose caller used a token or a session. [ByKey] returns the signature for a key.
const (
	ByToken   = "token"
	BySession = "session"
)
