package account

import (
	_ "embed"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// Limits of texts that users enter.
const (
	maxNameRunes     = 100
	maxEmailBytes    = 254 // limit of RFC 5321
	maxLocalBytes    = 64
	minPasswordRunes = 10
	maxPasswordBytes = 1 << 10
)

// checkName returns name without surrounding spaces, or ErrName.
func checkName(name string) (string, error) {
	name = strings.TrimSpace(name)
	if name == "" || !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxNameRunes || strings.ContainsFunc(name, unicode.IsControl) {
		return "", ErrName
	}
	return name, nil
}

// checkEmail returns the normalised form of an email address, which is stored, compared and sent to: lower case, with the domain in ASCII.
// A normalised address cannot end a header line or begin another recipient.
func checkEmail(email string) (string, error) {
	email = strings.TrimSpace(email)
	at := strings.LastIndexByte(email, '@')
	if at < 1 || len(email) > maxEmailBytes {
		return "", ErrEmail
	}
	domain, err := idna.Lookup.ToASCII(email[at+1:])
	if again, same := idna.Lookup.ToASCII(domain); same != nil || again != domain { // ToASCII rejects some of its results
		return "", ErrEmail
	}
	if err != nil || !strings.Contains(strings.Trim(domain, "."), ".") || strings.ContainsAny(domain, "[]") {
		return "", ErrEmail
	}
	local := strings.ToLower(email[:at])
	email = local + "@" + strings.ToLower(domain)
	if len(local) > maxLocalBytes || len(email) > maxEmailBytes || strings.ContainsFunc(local, invalidInAddress) {
		return "", ErrEmail
	}
	parsed, err := mail.ParseAddress(email)
	if err != nil || parsed.Address != email || parsed.Name != "" {
		return "", ErrEmail
	}
	return email, nil
}

// invalidInAddress reports whether c is invalid in an email address without quotes.
func invalidInAddress(c rune) bool {
	return c > unicode.MaxASCII || c != '.' && !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", c)
}

//go:embed worst.txt
var worstText string

// worst lists common passwords of ten characters and more, in lower case.
var worst = strings.Fields(worstText)

// checkPassword returns the form of a password that is hashed, which is the same for every keyboard. The password must not equal one of the
// texts about: the name and the email address.
func checkPassword(password string, about ...string) (string, error) {
	password = formPassword(password)
	switch n := utf8.RuneCountInString(password); {
	case n < minPasswordRunes:
		return "", fmt.Errorf("%w: it must have at least %d characters", ErrPassword, minPasswordRunes)
	case len(password) > maxPasswordBytes:
		return "", fmt.Errorf("%w: it must have at most %d bytes", ErrPassword, maxPasswordBytes)
	}
	lower := strings.ToLower(password)
	first, _ := utf8.DecodeRuneInString(lower)
	if slices.Contains(worst, lower) || strings.Trim(lower, string(first)) == "" {
		return "", fmt.Errorf("%w: it is too easy to guess", ErrPassword)
	}
	for _, text := range about {
		if text != "" && lower == strings.ToLower(text) {
			return "", fmt.Errorf("%w: it must not be your name or email address", ErrPassword)
		}
	}
	return password, nil
}

// formPassword returns a password in the normal form NFKC, as NIST SP 800-63B recommends.
func formPassword(password string) string {
	if len(password) > 4*maxPasswordBytes {
		return password[:maxPasswordBytes+1] // longer than checkPassword allows
	}
	return norm.NFKC.String(strings.ToValidUTF8(password, "\uFFFD"))
}
