package call

// Limits of a call.
const (
	MaxInputs      = 128  // inputs of one call that predicts, adds or changes inputs
	MaxLabels      = 1000 // labels of one input, and of one item of a call
	MaxConcepts    = 200  // maximum max_concepts of one output
	ShownConcepts  = 20   // concepts of one output without max_concepts
	DefaultPerPage = 20   // rows of a page
	MaxPerPage     = 1000 // a larger per_page has the same effect
	MaxIDBytes     = 128  // length of an id
	MaxNameBytes   = 1024 // length of a concept's or a model's name
	MaxIDs         = 1000 // ids of one call that deletes models
	MaxURLBytes    = 8192 // length of a picture's URL
	MaxSelected    = 1000 // select_concepts of one call

	MaxActivatedInputs = 8  // inputs of one call for activations: the network returns a quarter of a megabyte for each
	MaxActivations     = 20 // concepts of one call for activations

	MaxModelConcepts  = 5000     // concepts of one custom model
	MaxSettingBytes   = 64 << 10 // one field of a model's output_config
	MaxWorkflowInputs = 32       // inputs of one workflow call
	MaxWorkflowModels = 5        // models of one workflow

	MaxFeedbackBytes = 64 << 10 // one piece of feedback

	MaxPictureBytes = 20_000_000 // one picture sent as base64
	MaxVideoBytes   = 10_000_000 // one video sent as base64

	MaxVideos       = 4   // videos of one call
	MaxFrames       = 600 // frames of all videos of one call; each video may have an equal part of them
	DefaultSampleMS = 1000
)

// Approximate limits on the applications and keys that accounts create, over /v2 and on the pages. Two simultaneous calls may exceed them.
const (
	MaxApps = 200 // applications of an account
	MaxKeys = 500 // keys of an application
)
