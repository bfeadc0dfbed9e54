import { ownerDe } from './de-owner.ts';
import type { Words } from './en.ts';

export const de: Words = {
  shell: {
    language: 'Sprache',
    menu: 'Menü',
    closeMenu: 'Menü schließen',
    navigation: 'Seiten',
    signOut: 'Abmelden',
    skip: 'Zur Seite springen',
    theme: {
      system: 'Farben wie auf dem Gerät',
      light: 'Helle Farben',
      dark: 'Dunkle Farben',
      change: 'Klick wechselt',
    },
    broken: {
      text: 'Diese Seite hat ein Problem und kann nicht weiter. Was angenommen wurde, ist nicht verloren.',
      reload: 'Seite neu laden',
    },
    notFound: { title: 'Diese Seite gibt es nicht', text: 'Vielleicht ist ein Tippfehler in der Adresse.', home: 'Zur ersten Seite' },
  },
  parts: {
    loading: 'Lädt …',
    retry: 'Noch einmal versuchen',
    more: 'Mehr zeigen',
    cancel: 'Abbrechen',
    search: 'Suchen',
    none: 'keine',
  },
  signIn: {
    signIn: 'Anmelden',
    key: 'API-Schlüssel',
    noKey: 'Das ist kein Schlüssel von Concierge.',
    signedOut: 'Sie wurden abgemeldet.',
    tabOnly: 'Nur in diesem Tab',
    cookieHelp: 'Sie bleiben 12 Stunden angemeldet, in allen Tabs dieses Browsers. Kein Skript der Seite kann den Schlüssel lesen.',
    tabOnlyHelp: 'Der Schlüssel bleibt in diesem Tab und ist weg, wenn Sie ihn schließen.',
    whereFrom: 'Woher Schlüssel kommen:',
  },
  owner: ownerDe,
};
