package call

// Limits of a call.
const (
	MaxInputs      = 128  // inputs of one call that predicts, adds or changes some
	MaxLabels      = 1000 // of one input, and of one item of a call
	MaxConcepts    = 200  // of one output, by max_concepts
	ShownConcepts  = 20   // of one output without max_concepts
	DefaultPerPage = 20   // rows of a page
	MaxPerPage     = 1000 // a larger per_page is taken as this
	MaxIDBytes     = 128  // of an id
	MaxNameBytes   = 1024 // of a concept's or a model's name
	MaxIDs         = 1000 // of one call that deletes models
	MaxURLBytes    = 8192 // of a picture's address
	MaxSelected    = 1000 // select_concepts of one call

	MaxActivatedInputs = 8  // of one call that asks where concepts are: a quarter of a megabyte each comes from the network
	MaxActivations     = 20 // concepts of such a call

	MaxModelConcepts  = 5000     // of one own model
	MaxSettingBytes   = 64 << 10 // of one field of a model's output_config
	MaxWorkflowInputs = 32       // of one workflow call
	MaxWorkflowModels = 5        // of one workflow

	MaxFeedbackBytes = 64 << 10 // of one piece of feedback

	MaxPictureBytes = 20_000_000 // of one picture sent as base64
	MaxVideoBytes   = 10_000_000 // of one video sent as base64

	MaxVideos       = 4   // of one call
	MaxFrames       = 600 // of the videos of one call, each of which may have an equal part of them
	DefaultSampleMS = 1000
)

// Approximate limits of the things that an account makes, over /v2 and on the pages: two simultaneous calls may exceed them.
const (
	MaxApps = 200 // of an account
	MaxKeys = 500 // of an application
)
