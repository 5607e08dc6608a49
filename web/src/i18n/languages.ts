/** The 23 languages of the pages, sorted by the Latin form of their names. Each has its code, and its name in that language. */
export const languages = [
  { code: 'ar', name: 'العربية' },
  { code: 'bn', name: 'বাংলা' },
  { code: 'da', name: 'Dansk' },
  { code: 'de', name: 'Deutsch' },
  { code: 'en', name: 'English' },
  { code: 'es', name: 'Español' },
  { code: 'fr', name: 'Français' },
  { code: 'hi', name: 'हिन्दी' },
  { code: 'it', name: 'Italiano' },
  { code: 'hu', name: 'Magyar' },
  { code: 'nl', name: 'Nederlands' },
  { code: 'ja', name: '日本語' },
  { code: 'ko', name: '한국어' },
  { code: 'no', name: 'Norsk' },
  { code: 'pl', name: 'Polski' },
  { code: 'pt', name: 'Português' },
  { code: 'pa', name: 'ਪੰਜਾਬੀ' },
  { code: 'ru', name: 'Русский' },
  { code: 'fi', name: 'Suomi' },
  { code: 'sv', name: 'Svenska' },
  { code: 'tr', name: 'Türkçe' },
  { code: 'zh', name: '简体中文' },
  { code: 'zh-TW', name: '繁體中文' },
] as const;

/** The code of a language of the pages. */
export type LanguageCode = (typeof languages)[number]['code'];

/** Reports whether the pages have a language. */
export const isLanguage = (code: string): code is LanguageCode => languages.some((l) => l.code === code);

/** Returns the name of a language in that language. For an unknown code, it returns the code. */
export function nameOf(code: string): string {
  return languages.find((l) => l.code === code)?.name ?? code;
}

/** Returns the writing direction of a language. */
export function directionOf(code: string): 'ltr' | 'rtl' {
  return code === 'ar' ? 'rtl' : 'ltr';
}

/** Returns the first of the reader's languages that the pages support. If there is none, it returns English. */
export function bestLanguage(preferred: readonly string[]): LanguageCode {
  for (const tag of preferred) {
    const code = supportedLanguage(tag);
    if (code) return code;
  }
  return 'en';
}

function supportedLanguage(tag: string): LanguageCode | undefined {
  const [base = '', ...rest] = tag.toLowerCase().split('-');
  if (base === 'zh') return rest.some((part) => ['tw', 'hk', 'mo', 'hant'].includes(part)) ? 'zh-TW' : 'zh';
  if (base === 'nb' || base === 'nn') return 'no';
  return isLanguage(base) ? base : undefined;
}
