package fold

import (
	"errors"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// control folds the operations of the control partition.
func (f *Fold) control() (Verdict, error) {
	switch b := f.e.Op.Body.(type) {
	case *log.AppCreate:
		return f.appCreate(b)
	case *log.AppChange:
		return f.appChange(b)
	case *log.AppDelete:
		return f.appDelete(b)
	case *log.KeyCreate:
		return f.keyCreate(b)
	case *log.KeyDelete:
		return f.keyDelete(b)
	case *log.ClientSet:
		return f.clientSet(b)
	case *log.TokensRevoke:
		return f.tokensRevoke(b)
	case *log.EdgeCreate:
		return f.edgeCreate(b)
	case *log.EdgeEnrolled:
		return f.edgeEnrolled(b)
	case *log.EdgeRevoke:
		return f.edgeRevoke(b)
	case *log.SiteLease:
		return f.siteLease(b)
	case *log.SitesSkip:
		f.h.Sites = max(f.h.Sites, uint32(b.To))
		return Verdict{Code: OK, Dot: f.e.Op.Dot}, nil
	case *log.TokenKeys:
		f.w.PutTrust(&catalog.Trust{Issuer: b.Issuer, Keys: b.Keys})
		return Verdict{Code: OK, Dot: f.e.Op.Dot}, nil
	}
	return refusal("kind"), nil
}

func (f *Fold) appCreate(b *log.AppCreate) (Verdict, error) {
	if _, err := catalog.ParseAppID(b.ID); err != nil {
		return refusal("id"), nil
	}
	if deleted, err := f.w.AppDeleted(b.ID); deleted || err != nil {
		return Verdict{Code: Gone}, err
	}
	other, err := f.w.App(b.ID)
	if err == nil {
		return Verdict{Code: Duplicate, Detail: "id", Dot: other.Dot, ID: b.ID}, nil
	}
	if !errors.Is(err, catalog.ErrNotFound) {
		return Verdict{}, err
	}
	op := &f.e.Op
	f.w.PutApp(&catalog.App{
		Dot: op.Dot, Seq: f.e.Seq, ID: b.ID, Name: b.Name, Language: b.Language, DefaultModel: b.DefaultModel, Owner: b.Owner, Created: op.At,
		LocalOnly: b.LocalOnly,
	})
	return Verdict{Code: OK, Dot: op.Dot, ID: b.ID}, nil
}

func (f *Fold) appChange(b *log.AppChange) (Verdict, error) {
	a, err := f.w.App(b.ID)
	if err != nil {
		return missingVerdict(err)
	}
	if b.Name != nil {
		a.Name = *b.Name
	}
	if b.DefaultModel != nil {
		a.DefaultModel = *b.DefaultModel
	}
	if b.MaxStale != nil {
		a.MaxStale = *b.MaxStale
	}
	if b.LocalOnly != nil {
		a.LocalOnly = *b.LocalOnly
	}
	f.w.PutApp(&a)
	return Verdict{Code: OK, Dot: a.Dot, ID: a.ID}, nil
}

func (f *Fold) appDelete(b *log.AppDelete) (Verdict, error) {
	a, err := f.w.App(b.ID)
	if err != nil {
		return missingVerdict(err)
	}
	return Verdict{Code: OK, Dot: a.Dot, ID: a.ID}, f.w.DeleteApp(&a, f.e.Seq)
}

func (f *Fold) keyCreate(b *log.KeyCreate) (Verdict, error) {
	if _, err := f.w.App(b.App); err != nil {
		return missingVerdict(err)
	}
	_, err := f.w.Key(b.Hash)
	if err == nil {
		return Verdict{Code: Duplicate, Detail: "key"}, nil
	}
	if !errors.Is(err, catalog.ErrNotFound) {
		return Verdict{}, err
	}
	if b.Replaces != [32]byte{} {
		old, err := f.w.Key(b.Replaces)
		if err != nil {
			return missingVerdict(err)
		}
		if old.App != b.App {
			return Verdict{Code: Gone}, nil
		}
		f.w.DeleteKey(&old)
	}
	f.w.PutKey(&catalog.Key{
		Hash: b.Hash, App: b.App, Scopes: b.Scopes, Description: b.Description, By: f.e.Op.By, Created: f.e.Op.At,
	})
	return Verdict{Code: OK, Dot: f.e.Op.Dot}, nil
}

func (f *Fold) keyDelete(b *log.KeyDelete) (Verdict, error) {
	k, err := f.w.Key(b.Hash)
	if err != nil {
		return missingVerdict(err)
	}
	f.w.DeleteKey(&k)
	return Verdict{Code: OK}, nil
}

// clientSet replaces an application's client. It returns Duplicate if another application has a client with this id.
func (f *Fold) clientSet(b *log.ClientSet) (Verdict, error) {
	if !isID(b.ID) {
		return refusal("client"), nil
	}
	if _, err := f.w.App(b.App); err != nil {
		return missingVerdict(err)
	}
	other, err := f.w.Client(b.ID)
	if err == nil && other.App != b.App {
		return Verdict{Code: Duplicate, Detail: "id", ID: b.ID}, nil
	}
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return Verdict{}, err
	}
	c := catalog.Client{ID: b.ID, App: b.App, Secret: b.Secret, Generation: f.e.Seq, Created: f.e.Op.At}
	return Verdict{Code: OK, Dot: f.e.Op.Dot, ID: b.ID}, f.w.PutClient(&c)
}

func (f *Fold) tokensRevoke(b *log.TokensRevoke) (Verdict, error) {
	c, err := f.w.ClientOf(b.App)
	if err != nil {
		return missingVerdict(err)
	}
	c.Generation = f.e.Seq
	return Verdict{Code: OK, Dot: f.e.Op.Dot, ID: c.ID}, f.w.PutClient(&c)
}
