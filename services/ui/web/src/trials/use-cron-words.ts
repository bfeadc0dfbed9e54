import { useEffect, useState } from 'react';

/** A cron expression in the console's language; as it is written until the words are there. */
export function useCronWords(cron: string, locale: string): string {
  const [said, setSaid] = useState(cron);
  useEffect(() => {
    let isCurrent = true;
    if (cron === '') return undefined;
    // All languages are in one file, which is only loaded here.
    void import('cronstrue/i18n')
      .then(({ default: cronstrue }) => cronstrue.toString(cron, { locale, use24HourTimeFormat: locale !== 'en' }))
      .catch(() => cron)
      .then((text) => {
        if (isCurrent) setSaid(text);
      });
    return () => {
      isCurrent = false;
    };
  }, [cron, locale]);
  return said;
}
