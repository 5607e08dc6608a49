package auth

// What operations are signed with that were asked for with a token or in a session; see [By].
const (
	ByToken   = "token"
	BySession = "session"
)
