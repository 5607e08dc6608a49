//go:build wasip1 && lent

package cpu

// lent says that the host lends kernels: a module that is built so does not start without them.
const lent = true
