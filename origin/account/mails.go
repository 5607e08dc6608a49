package account

import "strings"

// The texts of all mails. Names are left out of subjects, and secrets too: subjects show on locked screens.

const footer = `

You did not ask for this? Then do nothing, and nothing changes.`

func codeMail(rec *record, code string) Mail {
	return compose(rec, "Your Sightline code", `your code is

    `+code+`

Enter it on the page that asks for it, within 30 minutes. It shows that this address is yours.`+footer)
}

func resetMail(rec *record, link string) Mail {
	return compose(rec, "A new password for Sightline", `open this link to set a new password:

    `+link+`

It works once, and for an hour. All your sessions end when you use it.`+footer)
}

func passwordMail(rec *record) Mail {
	return compose(rec, "Your Sightline password was changed", `your password was changed, and all other sessions have ended.

That was not you? Ask for a new password on the sign-in page, and tell whoever runs the server.`)
}

func movedMail(rec *record) Mail {
	return compose(rec, "Your Sightline address was changed", `your account has another e-mail address now, and mails go there.

That was not you? Tell whoever runs the server.`)
}

func compose(rec *record, subject, text string) Mail {
	return Mail{To: rec.Email, Subject: subject, Text: strings.TrimSpace("Hello "+rec.Name+",\n\n"+text) + "\n"}
}
