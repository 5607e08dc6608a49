// Package schema is the code that protoc-gen-go makes of ONNX's own schema. It is the
// oracle of package onnx's tests, which compare what both read; nothing else imports it.
//
// onnx.proto is that of github.com/onnx/onnx 1.12 (Apache-2.0), unchanged. To make the code again:
//
//	protoc --go_out=. --go_opt=paths=source_relative --go_opt=Monnx.proto=./schema onnx.proto
package schema
