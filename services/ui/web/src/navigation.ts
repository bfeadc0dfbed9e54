import { useEffect } from 'react';
// eslint-disable-next-line no-restricted-imports -- all others navigate by this file
import { navigate as go, usePathname } from 'wouter/use-browser-location';

/** Asked before the page is left; null: nothing would be lost. */
let question: string | null = null;
/** Where that would be lost. */
let here = '';

// Before the router listens, which is when it is first drawn: on a window listeners are called in their order.
addEventListener('popstate', (event) => {
  if (location.href === here || mayLeave()) return;
  // The browser is there already: it comes back before the router hears of it.
  event.stopImmediatePropagation();
  go(here);
});

/** Whether what is shown may go away: where that loses what is not saved, the user is asked. */
export function mayLeave(): boolean {
  return question === null || confirm(question);
}

/** What is not saved has been given up: it is not asked about any more. */
export function discardUnsaved(): void {
  question = null;
}

/** Goes to an address of the console, unless what is not saved is to be kept. Says whether it went. */
export function navigate(to: string | URL, options?: Parameters<typeof go>[1]): boolean {
  if (!mayLeave()) return false;
  go(to, options);
  return true;
}

/** How the router reads the address and goes to another. */
export function useConsoleLocation(): [string, typeof navigate] {
  return [usePathname(), navigate];
}

/** Asks before the page is left with changes in it: by the browser, by its Back, or within the console. */
export function useLeaveGuard(isChanged: boolean, asked: string): void {
  useEffect(() => {
    if (!isChanged) return undefined;
    question = asked;
    here = location.href;
    const askAtUnload = (event: BeforeUnloadEvent): void => {
      if (question !== null) event.preventDefault();
    };
    addEventListener('beforeunload', askAtUnload);
    return () => {
      question = null;
      removeEventListener('beforeunload', askAtUnload);
    };
  }, [isChanged, asked]);
}
