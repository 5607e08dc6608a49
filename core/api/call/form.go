package call

// Values of app_id of public models and concepts.
const (
	MainAppID = "main" // as clients of 2017 and later expect
	NullAppID = "null" // in Options: null for every client
)

// PublicAppID returns the app_id of public models and concepts in the answer, or "" for null. If the host sets none, clients that name
// themselves get "main", because they expect it and some of them loop without it. The interface's description has null.
func (x *Call) PublicAppID() string {
	switch id := x.Host.PublicAppID; {
	case id == NullAppID, id == "" && !x.namesItself:
		return ""
	case id == "":
		return MainAppID
	default:
		return id
	}
}
