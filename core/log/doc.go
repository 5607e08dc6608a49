// Package log is the ordered log of operations that an application is.
package log
