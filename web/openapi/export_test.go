package openapi

// Document returns the document, JSON in UTF-8. Nobody may change it.
func Document() []byte { return document }

// ETag returns the entity tag of the document.
func ETag() string { return file.Tag }
