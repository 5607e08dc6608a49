// Tests an account from beginning to end: a person starts with an empty server, creates an application that programs call, and deletes
// everything.
import { check, checkEqual, journey, origin, runShell, waitForLine, words } from './browser.js';
import { caller, newKey as createKey } from './demonstration.js';

const m = await words('en');
const operator = { name: 'Ada "root" <b>Olsen</b>', email: 'ada@example.org', password: 'quiet-harbour-41' };
const person = { name: 'Bo Lind', email: 'bo@example.org', password: 'seven-wet-otters' };
const newPassword = 'nine-dry-badgers'; // person's password, later
const setupLink = /^\s+(http\S+\/sign-up\?setup=\S+)$/;
const application = 'Sorting line';
const key = 'Camera 1';

/** Names with markup or special characters. The pages must show them as plain text. */
const hostileNames = [
  '<script>document.title="taken"</script>',
  '"><img src=x onerror=alert(1)>',
  "{{7*7}} ${7*7} '; drop table apps; --",
  '\u202egnp.exe\u202c 🦊👩‍👩‍👧‍👦 é',
];

await journey(async (arrive) => {
  const ada = await arrive();
  await ada.step('An empty server shows where to create the first account', async () => {
    await ada.page.goto('/');
    await ada.waitFor(ada.page.getByText(m('sign_up_first')));
    await ada.checkAccessibility('sign-up before the first account');
  });
  await ada.step('The link that the server printed creates the first account', async () => {
    const link = await waitForLine(setupLink);
    checkEqual(new URL(link).origin, origin, 'the link');
    await ada.page.goto(link);
    await ada.waitFor(ada.page.getByText(m('first_account_lead')));
    await ada.button(m('create_account_do')).click();
    await ada.waitFor(ada.page.getByText(m('name_missing')));
    await ada.checkAccessibility('sign-up with mistakes');
    await signUp(ada, operator);
    await ada.waitFor(ada.heading(m('look_first_title'))); // a new data folder has an application
    await ada.checkAccessibility('a first page');
    await ada.page.goto('/apps');
    await ada.waitFor(ada.heading(m('applications')));
    await ada.checkAccessibility('the first application');
  });
  await ada.step('The pages show names with markup as plain text', async () => {
    await ada.waitFor(ada.link(operator.name)); // the link to the account
    for (const name of hostileNames) {
      await createApp(ada, name, 'English', m('create_in', { language: 'English' }));
      await confirmStorage(ada, m('secret_stored'));
      await ada.waitFor(ada.heading(name));
    }
    for (const name of hostileNames) {
      await newKey(ada, name);
      await confirmStorage(ada, m('key_stored'));
      await ada.waitFor(ada.page.getByRole('rowheader', { name, exact: true }));
    }
    checkEqual(await ada.page.title().then((title) => title.includes('Sightline')), true, 'the title');
    checkEqual(await ada.page.locator('body script, body img[onerror]').count(), 0, 'names that became markup');
    await ada.checkAccessibility('hostile names');
  });
  await ada.step('The printed link works once: a later sign-up with it must verify its email address', async () => {
    await signOut(ada);
    await ada.page.goto(await waitForLine(setupLink));
    await signUp(ada, { ...person, email: 'eve@example.org' });
    await ada.waitFor(ada.heading(m('code_label')));
  });

  const bo = await arrive();
  await bo.step('A visitor signs up and may make 100 calls before the email address is verified', async () => {
    await bo.page.goto('/apps');
    await bo.waitFor(bo.heading(m('sign_in')));
    await bo.checkAccessibility('sign-in');
    await bo.link(m('create_account')).click();
    await bo.waitFor(bo.heading(m('create_account')));
    await bo.checkAccessibility('sign-up');
    await signUp(bo, person);
    await bo.waitFor(bo.heading(m('code_label')));
    await bo.waitFor(bo.page.getByText(m('verify_lead_log', { email: person.email })));
    await bo.waitFor(bo.page.getByText(m('mail_in_log')));
    await bo.waitFor(bo.page.getByText(m('calls_until_verified', { left: '100', limit: '100' })));
    await bo.waitFor(bo.page.getByText(m('calls_without_limit')));
    await bo.checkAccessibility('verification');
    await bo.link(m('verify_later')).click();
    await bo.page.getByText(m('not_verified')).click();
    await bo.waitFor(bo.page.getByText(m('calls_until_verified', { left: '100', limit: '100' })));
    await bo.checkAccessibility('account, not verified');
  });
  await bo.step('The page rejects a wrong code and accepts the six digits from the email', async () => {
    await bo.page
      .getByRole('main')
      .getByRole('link', { name: m('verify_do') })
      .first()
      .click();
    const code = await waitForLine(/to=bo@example\.org .*?\b(\d{6})\b/);
    const wrong = String((Number(code) + 1) % 1e6).padStart(6, '0');
    await bo.field(m('digit', { number: '1' })).click();
    await bo.type(wrong);
    await bo.waitFor(bo.page.getByRole('alert').getByText(m('error_code_wrong')));
    await bo.checkAccessibility('a wrong code');
    await bo.field(m('digit', { number: '1' })).click();
    await bo.type(code);
    await bo.waitFor(bo.heading(m('no_applications')));
    await bo.checkAccessibility('no application');
  }, [400]);

  const eve = await arrive();
  await eve.step(
    'A sign-up with a registered email address looks like any other, and its owner gets an email',
    async () => {
      await eve.page.goto('/sign-up');
      await signUp(eve, { ...person, password: operator.password });
      await eve.waitFor(eve.heading(m('code_label')));
      await eve.waitFor(eve.page.getByText(m('calls_until_verified', { left: '100', limit: '100' })));
      await waitForLine(/to=bo@example\.org subject="You already have a Sightline account"/);
      await eve.button(m('change_address')).click();
      await eve.field(m('email')).fill(operator.email);
      await eve.button(m('save')).click();
      await eve.waitFor(eve.page.getByText(m('password_missing')));
      await eve.checkAccessibility('another address, without the password');
    },
  );

  let secret;
  await bo.step('A person creates an application in German, and the page shows its secret once', async () => {
    await createApp(bo, application, 'Deutsch', m('create_in', { language: 'Deutsch' }), 'new application');
    const dialog = bo.dialog(m('secret_once'));
    await bo.waitFor(dialog);
    await bo.checkAccessibility('a secret, once');
    await bo.press('Escape');
    await bo.waitFor(dialog);
    const copyField = (message) => bo.copyText(bo.button(m('copy_what', { what: m(message) }), dialog));
    secret = {
      SIGHTLINE_CLIENT_ID: await copyField('client_id'),
      SIGHTLINE_CLIENT_SECRET: await copyField('client_secret'),
    };
    check(/^[0-9a-f]{64}$/.test(secret.SIGHTLINE_CLIENT_SECRET), 'the secret is not 64 digits');
    await confirmStorage(bo, m('secret_stored'));
    await bo.waitFor(bo.heading(application));
    check(!(await bo.page.content()).includes(secret.SIGHTLINE_CLIENT_SECRET), 'the secret is still in the page');
    await bo.checkAccessibility('an application');
  });
  await bo.step('The token example runs in a shell as it was copied', async () => {
    await bo.button(m('examples_by_token')).click();
    const { status, answer } = await runShell(await bo.copyText(copyButton(bo)), secret);
    checkPrediction(status, answer);
    await bo.checkAccessibility('the token example');
  });

  let command;
  await bo.step('A person creates a key, and the page shows it once and tries it', async () => {
    await newKey(bo, key, 'new key');
    const dialog = bo.dialog(m('key_once'));
    await bo.waitFor(dialog);
    await bo.press('Escape');
    await bo.waitFor(dialog);
    command = await bo.copyText(copyButton(bo, dialog));
    await bo.button(m('try_key'), dialog).click();
    await bo.waitFor(dialog.getByText(m('key_tried')));
    await bo.checkAccessibility('a key, once');
    await confirmStorage(bo, m('key_stored'));
    await bo.waitFor(bo.page.getByRole('rowheader', { name: key, exact: true }));
    check(!(await bo.page.content()).includes(command.match(/Key ([0-9a-f]{32})/)[1]), 'the key is still in the page');
  });
  await bo.step('The cURL command of the key runs in a shell as it was copied', async () => {
    const { status, answer } = await runShell(command);
    checkPrediction(status, answer);
  });
  await bo.step('The page of the application counts its calls of the last 30 days', async () => {
    await bo.page.reload();
    await bo.waitFor(bo.page.getByText(m('calls_here_30')));
    await bo.button(m('by_key')).click();
    await bo.checkAccessibility('usage by key');
  });
  await bo.step('A page whose calls fail shows that it is offline, and connects again by itself', async () => {
    const home = bo.page.url();
    const id = new URL(home).pathname.split('/').at(-1);
    const waitForStatus = (words) =>
      bo.waitUntil((words) => document.querySelector('aside .foot a')?.textContent.includes(words), words);
    await bo.page.goto(`/${id}/inputs`);
    await waitForStatus(m('sync_summary_confirmed'));
    bo.isOffline = true;
    await bo.page.route('**/v2/**', (route) => route.abort());
    await bo.page.locator(`aside a[href="/${id}/models"]`).click();
    await waitForStatus(m('sync_summary_offline'));
    await bo.page.unroute('**/v2/**');
    await waitForStatus(m('sync_summary_confirmed'));
    await bo.page.goto(home);
    await bo.confirmOnline();
  });
  await bo.step('The server rejects the cURL command after its key was deleted', async () => {
    await bo.button(m('delete_key', { name: key })).click();
    await bo.waitFor(bo.dialog(m('delete_key_title', { name: key })));
    await bo.checkAccessibility('the question before a key goes');
    await bo.button(m('delete_button'), bo.dialog(m('delete_key_title', { name: key }))).click();
    await bo.waitFor(bo.page.getByText(m('no_keys')));
    const { status, answer } = await runShell(command);
    checkEqual([status, answer.status.code], [401, 11009], 'the answer to a deleted key');
  });
  await bo.step('The search page shows the notice of an answer', () => showNotice(bo));
  await bo.step('The pages show that a model was not trained because no picture is labelled', () =>
    showModelWithoutLabels(bo),
  );
  await bo.step('The page deletes an unused concept, and shows why a used one stays', () => deleteConcepts(bo), [400]);
  await bo.step('The browser downloads an export of the application, and a second export must wait', async () => {
    await bo.link(m('delete_named', { name: application })).click();
    const dialog = bo.dialog(m('delete_title', { name: application }));
    const button = bo.button(m('export_first'), dialog);
    const [download] = await Promise.all([bo.page.waitForEvent('download'), button.click()]);
    checkEqual(download.suggestedFilename(), 'Sorting-line.zip', 'the name of the file');
    checkEqual(await download.failure(), null, 'the failure of the download');
    const status = { code: 11005, description: 'Too Many Requests', reason: 'export' };
    await bo.page.route('**/export-status', (route) => route.fulfill({ status: 429, json: { status } }), { times: 1 });
    await button.click();
    await bo.waitFor(dialog.getByText(m('error_export')));
    await bo.press('Escape');
  }, [429]);
  await bo.step('The page deletes the application only after its exact name was typed', async () => {
    await bo.link(m('delete_named', { name: application })).click();
    const dialog = bo.dialog(m('delete_title', { name: application }));
    const deleteButton = bo.button(m('delete_application'), dialog);
    const nameField = bo.field(m('delete_type', { name: application }), dialog);
    await nameField.fill(application.toLowerCase());
    check(await deleteButton.isDisabled(), 'another name would delete it');
    await bo.checkAccessibility('the question before an application goes');
    await nameField.fill(application);
    await deleteButton.click();
    await bo.waitFor(bo.heading(m('no_applications')));
    const token = `curl -s -X POST -u "$SIGHTLINE_CLIENT_ID:$SIGHTLINE_CLIENT_SECRET" ${origin}/v2/token`;
    checkEqual((await runShell(token, secret)).status, 401, 'the answer to its secret');
  });
  await bo.step('A person signs out, and signs in again by keyboard alone', async () => {
    await signOut(bo);
    await bo.press('Tab');
    checkEqual(await bo.focusLabel(), m('email'), 'the first stop');
    await bo.type(person.email);
    await bo.press('Tab');
    checkEqual(await bo.focusLabel(), m('password'), 'the second stop');
    await bo.type('not the password');
    await bo.press('Enter');
    await bo.waitFor(bo.page.getByRole('alert').getByText(m('error_password')));
    await bo.checkAccessibility('a wrong password');
    await bo.press('Shift+Tab');
    await bo.press('Tab');
    await bo.press('Control+a');
    await bo.type(person.password);
    await bo.press('Tab');
    checkEqual(await bo.focusLabel(), m('forgot_link'), 'the third stop');
    await bo.press('Tab');
    checkEqual(await bo.focusLabel(), m('sign_in'), 'the last stop');
    await bo.press('Space');
    await bo.waitFor(bo.heading(m('no_applications')));
  }, [401]);
  await bo.step('A person sets a new password with the link from an email', async () => {
    await signOut(bo);
    await bo.link(m('forgot_link')).click();
    await bo.waitFor(bo.heading(m('forgot_title')));
    await bo.checkAccessibility('a forgotten password');
    await bo.field(m('email')).fill(person.email);
    await bo.button(m('forgot_do')).click();
    await bo.waitFor(bo.page.getByText(m('forgot_link_created')));
    await bo.waitFor(bo.page.getByText(m('mail_in_log')));
    await bo.checkAccessibility('a link on its way');
    await bo.page.goto(await waitForLine(/to=bo@example\.org .*?(http[^\s"\\]+\/reset\?token=[^\s"\\]+)/));
    await bo.waitFor(bo.heading(m('reset_title')));
    await bo.checkAccessibility('a new password');
    await bo.field(m('new_password')).fill(newPassword);
    await bo.button(m('reset_do')).click();
    await bo.waitFor(bo.heading(m('no_applications')));
  });
  await bo.step('The server does not delete an account that has an application', async () => {
    await createApp(bo, application, 'English', m('create_in', { language: 'English' }));
    await confirmStorage(bo, m('secret_stored'));
    await requestDeletion(bo, newPassword);
    await bo.waitFor(bo.page.getByRole('alert').getByText(m('error_owner')));
    await bo.checkAccessibility('an account that has an application');
    await bo.button(m('delete_cancel'), bo.dialog(m('delete_account'))).click();
    await bo.page.goto('/apps');
    await bo.link(m('delete_named', { name: application })).click();
    await bo.field(m('delete_type', { name: application })).fill(application);
    await bo.button(m('delete_application')).click();
    await bo.waitFor(bo.heading(m('no_applications')));
  }, [400]);
  await bo.step('The server deletes an account without applications if the password is right', async () => {
    await requestDeletion(bo, person.password);
    await bo.waitFor(bo.page.getByRole('alert').getByText(m('error_wrong_password')));
    await bo.checkAccessibility('the question before an account goes');
    const dialog = bo.dialog(m('delete_account'));
    await bo.field(m('password'), dialog).fill(newPassword);
    await bo.button(m('delete_account'), dialog).click();
    await bo.waitFor(bo.heading(m('sign_in')));
    await bo.waitFor(bo.page.getByText(m('account_deleted')));
    await bo.page.goto('/account');
    await bo.waitFor(bo.heading(m('sign_in')));
    await bo.field(m('email')).fill(person.email);
    await bo.field(m('password')).fill(newPassword);
    await bo.button(m('sign_in')).click();
    await bo.waitFor(bo.page.getByRole('alert').getByText(m('error_password')));
  }, [400, 401]);
  const reader = await arrive({ storage: { language: 'ar' } });
  await reader.step('In Arabic, the API reference and the page for unknown URLs are laid out from the right', async () => {
    for (const path of ['/docs', '/nowhere']) {
      await reader.page.goto(path);
      await reader.waitFor(reader.page.getByRole('heading', { level: 1 }));
      checkEqual(await reader.page.evaluate(() => document.documentElement.dir), 'rtl', path);
      await reader.checkAccessibility(`${path}, from the right`);
      await reader.page.setViewportSize({ width: 360, height: 740 });
      await reader.checkWidth(`${path}, from the right`);
      await reader.page.setViewportSize({ width: 1200, height: 800 });
    }
  }, [404]);
});

async function signUp(t, { name, email, password }) {
  await t.field(m('name')).fill(name);
  await t.field(m('email')).fill(email);
  await t.field(m('password')).fill(password);
  await t.button(m('create_account_do')).click();
}

/**
 * Opens the account's page, and waits until all its lists are loaded. If the person signed out earlier, the server would refuse the pending
 * requests.
 */
async function openAccount(t) {
  await t.page.goto('/account');
  for (const list of ['sessions', 'activity']) await t.waitFor(t.page.getByRole('table', { name: m(list) }));
}

async function signOut(t) {
  await openAccount(t);
  await t.button(m('sign_out')).click();
  await t.waitFor(t.heading(m('sign_in')));
}

/** Asks for the account to be deleted. */
async function requestDeletion(t, password) {
  await openAccount(t);
  await t.button(m('delete_account')).click();
  const dialog = t.dialog(m('delete_account'));
  await t.field(m('password'), dialog).fill(password);
  await t.button(m('delete_account'), dialog).click();
}

/** Creates an application. `dialogName`, if given, is the name under which axe checks the dialog. */
async function createApp(t, name, language, button, dialogName) {
  await t.link(m('new_application')).first().click();
  const dialog = t.dialog(m('new_application'));
  await t.field(m('name'), dialog).fill(name);
  const choice = t.field(m('language_of_concepts'), dialog);
  const option = choice.locator('option', { hasText: language });
  await choice.selectOption(await option.getAttribute('value'));
  if (dialogName) await t.checkAccessibility(dialogName);
  await t.button(button, dialog).click();
}

async function newKey(t, description, dialogName) {
  await t.link(m('new_key')).click();
  const dialog = t.dialog(m('new_key'));
  await t.field(m('description'), dialog).fill(description);
  await t.waitFor(dialog.getByText(m('group_all')));
  if (dialogName) await t.checkAccessibility(dialogName);
  await t.button(m('create_key'), dialog).click();
}

/** Confirms that a secret is stored, which closes the only dialog that shows it. */
async function confirmStorage(t, label) {
  await t.field(label).check();
  await t.button(m('done')).click();
  await t.waitForRemoval(t.field(label));
}

function copyButton(t, container) {
  return t.button(m('copy_what', { what: m('code_of', { tool: 'cURL' }) }), container);
}

/** Checks that an answer has concepts in the application's language. */
function checkPrediction(status, answer) {
  checkEqual([status, answer.status?.code], [200, 10000], 'the answer');
  const names = answer.outputs[0].data.concepts.map((c) => c.name);
  check(names.includes('Leuchtturm'), `a lighthouse, seen as ${names}`);
}

/** Changes the answers to some requests for as long as `work` runs on other pages. It returns to the current page at the end. */
async function withAnswers(t, urls, change, work) {
  const home = t.page.url();
  await t.page.route(urls, change);
  await work(new URL(home).pathname.split('/').at(-1));
  await t.page.unroute(urls);
  await t.page.goto(home);
}

async function showNotice(t) {
  const notice = { at: 'query.ands[0].output.data.concepts[0].name', text: 'buterfly: no such concept; butterfly?' };
  const change = async (route) => {
    const response = await route.fetch();
    const headers = { ...response.headers(), 'x-sightline-notice': JSON.stringify([notice]) };
    await route.fulfill({ response, headers });
  };
  await withAnswers(t, '**/v2/searches', change, async (app) => {
    const ands = JSON.stringify([{ output: { data: { concepts: [{ name: 'buterfly' }] } } }]);
    await t.page.goto(`/${app}/search?q=${encodeURIComponent(ands)}`);
    await t.waitFor(t.page.getByRole('status').getByText(notice.text));
    await t.checkAccessibility('a notice');
    const { query } = JSON.parse(
      (await t.copyText(t.button(m('copy_what', { what: m('search_request') })))).match(/-d '(.*)'$/s)[1],
    );
    checkEqual(Object.keys(query), ['ands'], 'the members of a query without a chosen cut-off');
  });
}

async function showModelWithoutLabels(t) {
  const status = {
    code: 21100,
    description: 'Model trained successfully',
    details: 'No picture is labelled with a concept of this model. This version calls nothing present.',
  };
  const change = async (route) => {
    const response = await route.fetch();
    const answer = await response.json();
    for (const version of answer.model_versions ?? []) version.status = status;
    await route.fulfill({ response, json: answer });
  };
  await withAnswers(t, '**/v2/models/empty/versions?*', change, async (app) => {
    const call = caller(origin, await createKey(t, app));
    const model = { id: 'empty', name: 'Empty', output_info: { data: { concepts: [{ id: 'sail' }, { id: 'hull' }] } } };
    await call('POST', '/models', { model });
    await call('POST', '/models/empty/versions');
    await t.page.goto(`/${app}/models`);
    await t.waitFor(t.page.getByRole('row', { name: 'Empty' }).getByText(m('models_no_labels')));
    await t.page.goto(`/${app}/models/empty`);
    await t.waitFor(t.page.getByRole('status').getByText(m('models_no_labels')));
    await t.checkAccessibility('a model without labelled pictures');
  });
}

async function deleteConcepts(t) {
  const status = { code: 40003, description: 'Invalid request', details: 'concept_id: used by 1 version' };
  const change = (route) => {
    const refused = route.request().url().endsWith('/hull');
    if (route.request().method() !== 'DELETE') return route.continue();
    return route.fulfill({ status: refused ? 400 : 200, json: { status: refused ? status : { code: 10000 } } });
  };
  await withAnswers(t, '**/v2/concepts/*', change, async (app) => {
    const call = caller(origin, await createKey(t, app));
    await call('POST', '/concepts', { concepts: [{ id: 'draft' }] });
    await call('DELETE', '/models/empty');
    await t.page.goto(`/${app}/concepts`);
    for (const name of ['hull', 'draft']) {
      const dialog = t.dialog(m('delete_named', { name }));
      await t.button(m('delete_named', { name })).click();
      await t.waitFor(dialog);
      checkEqual(await t.focusLabel(), m('delete_cancel'), 'the answer that changes nothing');
      await t.button(m('delete_button'), dialog).click();
      if (name === 'draft') await t.waitFor(t.page.getByText(m('concepts_deleted', { name })));
      else {
        await t.waitFor(dialog.getByRole('alert').getByText(status.details));
        await t.checkAccessibility('a concept that is used');
        await t.button(m('delete_cancel'), dialog).click();
      }
      await t.waitForRemoval(dialog);
    }
  });
}
