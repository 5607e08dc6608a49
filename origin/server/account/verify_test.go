package account

import (
	"errors"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
)

func TestVerify(t *testing.T) {
	w := open(t, nil)
	w.operator()
	_, a := w.person("ada@x.example")
	code := w.code()
	wrong := "000000"
	if code == wrong {
		wrong = "000001"
	}
	for range codeTries - 1 {
		if _, err := w.Verify(t.Context(), a.ID, wrong, home); !errors.Is(err, ErrCode) {
			t.Fatalf("Verify(wrong) = %v", err)
		}
	}
	if got, err := w.Verify(t.Context(), a.ID, code, home); err != nil || !got.Verified {
		t.Fatalf("Verify after %d wrong codes = %+v, %v", codeTries-1, got, err)
	}
	if got, err := w.Account(a.ID); err != nil || !got.Verified {
		t.Errorf("Account = %+v, %v", got, err)
	}
}

func TestVerifyExpires(t *testing.T) {
	w := open(t, nil)
	w.operator()
	_, a := w.person("ada@x.example")
	code := w.code()
	wrong := "000000"
	if code == wrong {
		wrong = "000001"
	}
	for range codeTries {
		_, _ = w.Verify(t.Context(), a.ID, wrong, home)
	}
	if _, err := w.Verify(t.Context(), a.ID, code, home); !errors.Is(err, ErrCode) {
		t.Errorf("the code after %d wrong ones: %v", codeTries, err)
	}
	var wait *auth.RateError
	if err := w.SendCode(t.Context(), a.ID); !errors.As(err, &wait) || wait.Seconds() != 60 {
		t.Errorf("SendCode within a minute: %v", err)
	}
	w.clock.pass(mailEvery)
	if err := w.SendCode(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	next := w.code()
	w.clock.pass(codeLife)
	if _, err := w.Verify(t.Context(), a.ID, next, home); !errors.Is(err, ErrCode) {
		t.Errorf("the code after its time: %v", err)
	}
	for range mailsPerDay - 2 {
		if err := w.SendCode(t.Context(), a.ID); err != nil {
			t.Fatal(err)
		}
		w.clock.pass(mailEvery)
	}
	if err := w.SendCode(t.Context(), a.ID); !errors.Is(err, auth.ErrRate) {
		t.Errorf("mail %d of a day: %v", mailsPerDay+1, err)
	}
	w.clock.pass(24 * time.Hour)
	w.mails()
	if err := w.SendCode(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Verify(t.Context(), a.ID, w.code(), home); err != nil {
		t.Errorf("the code of the next day: %v", err)
	}
}

func TestChangeEmail(t *testing.T) {
	w := open(t, nil)
	w.operator()
	_, a := w.person("ada@x.example")
	old := w.code()
	w.clock.pass(mailEvery)
	if _, err := w.ChangeEmail(t.Context(), a.ID, "ada@y.example", "", home); !errors.Is(err, ErrWrongPassword) {
		t.Errorf("changing an address without the password: %v", err)
	}
	got, err := w.ChangeEmail(t.Context(), a.ID, "ada@y.example", password, home)
	if err != nil || got.Verified || got.Email != "ada@y.example" {
		t.Fatalf("ChangeEmail = %+v, %v", got, err)
	}
	mails := w.mails()
	if len(mails) != 1 || mails[0].To != "ada@y.example" {
		t.Errorf("mails = %v", mails)
	}
	if _, err := w.Verify(t.Context(), a.ID, old, home); !errors.Is(err, ErrCode) {
		t.Errorf("the old address's code: %v", err)
	}
	if _, err := w.Verify(t.Context(), a.ID, sixDigits.FindString(mails[0].Text), home); err != nil {
		t.Error(err)
	}
	if _, _, err := w.SignIn(t.Context(), "ada@x.example", password, home); !errors.Is(err, auth.ErrLogin) {
		t.Errorf("the old address signs in: %v", err)
	}
	if _, _, err := w.SignIn(t.Context(), "ada@y.example", password, home); err != nil {
		t.Errorf("the new address: %v", err)
	}
	w.clock.pass(mailEvery)
	if _, err := w.ChangeEmail(t.Context(), a.ID, "ada@z.example", "", home); !errors.Is(err, ErrWrongPassword) {
		t.Errorf("leaving a verified address without the password: %v", err)
	}
	if _, err := w.ChangeEmail(t.Context(), a.ID, "ada@z.example", password, home); err != nil {
		t.Fatal(err)
	}
	if mails = w.mails(); len(mails) != 2 || mails[0].To != "ada@y.example" || sixDigits.MatchString(mails[0].Text) {
		t.Errorf("the old address was not told, or too much: %v", mails)
	}
	w.person("ada@x.example") // the old address is free again
}
