import { ownerEn } from './en-owner.ts';

/**
 * Every text of the console, by page. The other catalogs have the same keys: a text that is missing there does not
 * compile. What depends on a number is a function.
 */
export const en = {
  shell: {
    language: 'Language',
    menu: 'Menu',
    closeMenu: 'Close the menu',
    navigation: 'Pages',
    signOut: 'Sign out',
    skip: 'Skip to the page',
    theme: {
      system: 'Colours as the device has them',
      light: 'Light colours',
      dark: 'Dark colours',
      change: 'click to change',
    },
    broken: { text: 'This page has a problem and cannot go on. Nothing that was accepted is lost.', reload: 'Reload the page' },
    notFound: { title: 'There is no such page', text: 'The address may have a typing error in it.', home: 'To the first page' },
  },
  parts: {
    loading: 'Loading …',
    retry: 'Try again',
    more: 'Show more',
    cancel: 'Cancel',
    search: 'Search',
    none: 'none',
  },
  signIn: {
    signIn: 'Sign in',
    key: 'API key',
    noKey: 'This is not a key of Concierge.',
    signedOut: 'You have been signed out.',
    tabOnly: 'Only in this tab',
    cookieHelp: 'You stay signed in for 12 hours, in all tabs of this browser. No script of the page can read the key.',
    tabOnlyHelp: 'The key stays in this tab and is gone when you close it.',
    whereFrom: 'Where keys come from:',
  },
  owner: ownerEn,
};

type Widened<Text> = Text extends string
  ? string
  : Text extends (...values: infer Values) => string
    ? (...values: Values) => string
    : { readonly [Key in keyof Text]: Widened<Text[Key]> };

/** What a catalog of another language has to have. */
export type Words = Widened<typeof en>;
