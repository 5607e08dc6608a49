package feed

import (
	"slices"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
)

// HeadHeader is the header with an edge's signature of the head of its request, which the origin checks before it reads the body.
const HeadHeader = "Sync-Head"

// isFrom reports whether the head of a request with a body belongs to an edge: the edge signed it, or signed another request in the same
// network a short time ago. The second rule is for bodies without a length, and for edges of earlier programs, which send no Sync-Head.
func (c *call) isFrom(e *catalog.Edge) bool {
	signature, length := c.header(HeadHeader), c.header("Content-Length")
	switch {
	case e.Revoked != 0 || !signedAt(c.r, c.now):
		return false
	case signature != "" && length != "":
		return isHeadSignedBy(e.Key, c.r, length, signature)
	}
	return c.f.proofs.has(e.ID, c.r.Remote, c.now)
}

const (
	proofTime = 10 * time.Minute
	maxProofs = 4 // networks of one edge that a feed remembers
)

// proofs contains the networks from which edges sent requests with a valid signature within proofTime. Only an edge's owner can add one, so
// edges cannot displace the networks of others.
type proofs struct {
	mu sync.Mutex
	of map[string][]proof // by the edge's id, the newest first; at most maxProofs
}

// proof is the last request with a valid signature from a network.
type proof struct {
	network string
	at      time.Time
}

// isOver reports whether a proof no longer counts.
func (p proof) isOver(now time.Time) bool { return now.Sub(p.at).Abs() > proofTime }

// add notes a request with a valid signature.
func (p *proofs) add(edge, network string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[string][]proof{}
	}
	others := slices.DeleteFunc(p.of[edge], func(x proof) bool { return x.network == network || x.isOver(now) })
	p.of[edge] = slices.Insert(others[:min(len(others), maxProofs-1)], 0, proof{network, now})
}

// has reports whether an edge sent a request with a valid signature from a network within proofTime.
func (p *proofs) has(edge, network string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.of[edge], func(x proof) bool { return x.network == network && !x.isOver(now) })
}

// sweep forgets edges whose proofs are over.
func (p *proofs) sweep(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for edge, all := range p.of {
		if all[0].isOver(now) {
			delete(p.of, edge)
		}
	}
}
