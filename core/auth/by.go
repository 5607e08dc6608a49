package auth

// Signatures of operations that were requested with a token or in a session; see [By].
const (
	ByToken   = "token"
	BySession = "session"
)
