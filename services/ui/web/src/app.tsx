import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useMemo, useState, type ReactNode } from 'react';
import { explain } from '../../src/chat/chat-failure.ts';
import { GatewayClient } from '../../src/chat/gateway-client.ts';
import { ChatPage } from './chat/chat-page.tsx';
import { SignIn } from './sign-in.tsx';
import { forgetSignedIn, loadSignedIn, saveSignedIn } from './signed-in.ts';

export function App(): ReactNode {
  const queries = useQueryClient();
  const [signedIn, setSignedIn] = useState(loadSignedIn);
  const [notice, setNotice] = useState<string | null>(null);

  const signOut = useCallback(
    (why: string | null) => {
      forgetSignedIn();
      queries.clear();
      setNotice(why);
      setSignedIn(null);
    },
    [queries],
  );

  const gateway = useMemo(
    () =>
      signedIn === null
        ? null
        : new GatewayClient({
            key: signedIn.key,
            onKeyRefused: (failure) => {
              signOut(`You have been signed out. ${explain(failure)}`);
            },
          }),
    [signedIn, signOut],
  );

  if (signedIn === null || gateway === null) {
    return (
      <SignIn
        notice={notice}
        onSignedIn={(next) => {
          saveSignedIn(next);
          setSignedIn(next);
        }}
      />
    );
  }
  return <ChatPage gateway={gateway} reach={signedIn.reach} onSignOut={() => signOut(null)} />;
}
