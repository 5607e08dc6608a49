package openapi

// Document returns the document as JSON in UTF-8. The caller must not change it.
func Document() []byte { return document }

// ETag returns the entity tag of the document.
func ETag() string { return file.Tag }
