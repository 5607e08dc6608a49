package account

import "strings"

// The texts of all emails. Subjects contain no names and no secrets, because locked screens show them.

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

func passwordMail(rec *record) Mail {
	return compose(rec, "Your Sightline password was changed", `Your password was changed, and you were signed out on all other devices.

If this wasn’t you, reset your password on the sign-in page and contact the server’s administrator.`)
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
	return Mail{To: rec.Email, Subject: subject, Text: strings.TrimSpace("Hello "+rec.Name+",\n\n"+text) + "\n"}
}
