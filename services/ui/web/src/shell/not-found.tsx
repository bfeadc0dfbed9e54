import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { Page } from '../parts/page.tsx';
import { Empty } from '../parts/states.tsx';
import { useWords } from '../words/words.tsx';

/** An address that names no page. */
export function NotFound({ home }: { readonly home: string }): ReactNode {
  const { notFound } = useWords().shell;
  return (
    <Page title={notFound.title}>
      <Empty title={notFound.text}>
        <Link href={home} className="text-primary underline">
          {notFound.home}
        </Link>
      </Empty>
    </Page>
  );
}
