// Compiles messages/NAMESPACE/LANGUAGE.json into src/words/NAMESPACE/LANGUAGE.js, so that a page loads only its own namespaces and only
// its reader's language. If a language lacks a message, the English one is used. Paraglide's own command puts all namespaces into one module
// and takes 13 s longer, because its import asks a database about each message. One insert for each language takes a second.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { compileProject } from '@inlang/paraglide-js';
import messageFormat from '@inlang/plugin-message-format';
import { loadProjectInMemory, newProject } from '@inlang/sdk';

const fileUrl = (/** @type {string} */ path) => new URL(`../${path}`, import.meta.url);
const settings = JSON.parse(readFileSync(fileUrl('project.inlang/settings.json'), 'utf8'));
const blob = await newProject({ settings });
rmSync(fileUrl('src/words'), { recursive: true, force: true });
for (const pattern of settings['plugin.inlang.messageFormat'].pathPattern) {
  const project = await loadProjectInMemory({ blob, providePlugins: [messageFormat] });
  const files = settings.locales.map((locale) => ({
    locale,
    content: readFileSync(fileUrl(pattern.replace('{locale}', locale))),
  }));
  const { bundles, messages, variants } = await messageFormat.importFiles({ files, settings });
  await project.db.insertInto('bundle').values(bundles).execute();
  for (const locale of settings.locales) {
    const id = (/** @type {string} */ bundle) => `${bundle} ${locale}`;
    const localeMessages = messages
      .filter((message) => message.locale === locale)
      .map((message) => ({ ...message, id: id(message.bundleId) }));
    const forms = variants
      .filter((variant) => variant.messageLocale === locale)
      .map(({ messageBundleId, matches, pattern }) => ({ messageId: id(messageBundleId), matches, pattern }));
    await project.db.insertInto('message').values(localeMessages).execute();
    await project.db.insertInto('variant').values(forms).execute();
  }
  const output = await compileProject({ project, compilerOptions: { outputStructure: 'locale-modules' } });
  const folder = pattern.split('/').at(-2);
  mkdirSync(fileUrl(`src/words/${folder}`), { recursive: true });
  for (const locale of settings.locales)
    writeFileSync(fileUrl(`src/words/${folder}/${locale}.js`), output[`messages/${locale}.js`]);
  for (const name of ['registry.js', 'runtime.js']) writeFileSync(fileUrl(`src/words/${name}`), output[name]); // the same for all namespaces
  await project.close();
}
