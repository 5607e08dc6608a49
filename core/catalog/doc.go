// Package catalog is what an application holds, as typed records over a [kv.Store].
package catalog
