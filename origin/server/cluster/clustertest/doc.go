// Package clustertest provides ports and patience for tests that run nodes of a cluster on this machine.
package clustertest
