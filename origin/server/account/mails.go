package account

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The texts of all emails. Subjects contain no names and no secrets, because locked screens show them. Emails to an address that is not
// verified contain no text of a user, because a stranger may have created the account.

// NewKey is a recently created API key, as an email names it.
type NewKey struct {
	ID          string // start of its hash
	Description string
	App         string // name of its application
	Created     time.Time
}

const (
	newKeyAge = 24 * time.Hour // maximum age of the keys that an email names
	maxNamed  = 20             // maximum number of keys that an email names
)

const footer = `

If you did not request this, ignore this email. Nothing will change.`

func codeMail(rec *record, code string) Mail {
	return compose(rec, "Your Sightline code", `Your code is

    `+code+`

Enter this code on the verification page within 30 minutes to confirm your email address.`+footer)
}

func resetMail(rec *record, link string) Mail {
	keys := ""
	if !rec.Verified {
		keys = " Nobody has confirmed this email address yet. The account’s API keys, client secrets and access tokens therefore stop working."
	}
	return compose(rec, "Reset your Sightline password", `Open this link to set a new password:

    `+link+`

The link works once and expires in an hour. Using it signs you out on all devices.`+keys+footer)
}

// passwordMail names the keys that were created in the last day, because a stranger who was signed in may have created them.
func passwordMail(rec *record, keys []NewKey) Mail {
	return compose(rec, "Your Sightline password was changed", `Your password was changed, and you were signed out on all other devices.`+
		listKeys(rec, keys)+`

If this wasn’t you, reset your password on the sign-in page and contact the server’s administrator.`)
}

// listKeys returns the paragraphs about new keys, or "" if there are none.
func listKeys(rec *record, keys []NewKey) string {
	if len(keys) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\nAPI keys stay valid. These were created in the last 24 hours:\n\n")
	for _, k := range keys[:min(len(keys), maxNamed)] {
		fmt.Fprintf(&b, "    %s, %s", k.ID, k.Created.UTC().Format("2006-01-02 15:04 UTC"))
		if rec.Verified {
			fmt.Fprintf(&b, ", %s of the application %s", strconv.Quote(k.Description), strconv.Quote(k.App))
		}
		b.WriteByte('\n')
	}
	if more := len(keys) - maxNamed; more > 0 {
		fmt.Fprintf(&b, "    and %d more\n", more)
	}
	b.WriteString("\nIf you do not know one of them, delete it on the page of its application.")
	return b.String()
}

func addressInUseMail(owner *record, link string) Mail {
	return compose(owner, "You already have a Sightline account", `Someone entered your email address for another account. The address stays yours, and that account does not get it.

If that was you, sign in to the account that you have. If you forgot its password, open this link:

    `+link+footer)
}

func movedMail(rec *record) Mail {
	return compose(rec, "Your Sightline email address was changed", `The email address of your account was changed. Emails now go to the new address.

If this wasn’t you, contact the server’s administrator.`)
}

func compose(rec *record, subject, text string) Mail {
	hello := "Hello,"
	if rec.Verified {
		hello = "Hello " + rec.Name + ","
	}
	return Mail{To: rec.Email, Subject: subject, Text: strings.TrimSpace(hello+"\n\n"+text) + "\n"}
}
