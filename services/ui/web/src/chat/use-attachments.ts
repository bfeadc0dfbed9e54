import { randomKey } from '@concierge/client';
import { limits, type UploadRef } from '@concierge/contract';
import { useCallback, useEffect, useRef, useState, useEffectEvent } from 'react';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import type { Words } from '../words/en.ts';
import { useExplain, useWords } from '../words/words.tsx';

/** uploading → ready or failed. */
export interface Attachment {
  readonly key: string;
  readonly file: Pick<File, 'name' | 'size' | 'type'>;
  readonly preview: string | null;
  readonly upload:
    | { readonly at: 'uploading' }
    | { readonly at: 'ready'; readonly ref: UploadRef }
    | { readonly at: 'failed'; readonly problem: string };
}

export interface Attachments {
  readonly items: readonly Attachment[];
  readonly add: (files: Iterable<File>) => void;
  /** Files of a message that was taken back: they are stored already. */
  readonly restore: (refs: readonly UploadRef[]) => void;
  readonly remove: (key: string) => void;
  /** How many of the last ones that were added were too many. */
  readonly leftOut: number;
  /** Hands over what has been uploaded and begins anew. */
  readonly take: () => UploadRef[];
}

const megabytes = limits.uploadMaxBytes / 1024 / 1024;

function refused(file: File, words: Words['chat']['composer']): string | null {
  if (file.size === 0) return words.emptyFile;
  return file.size > limits.uploadMaxBytes ? words.largeFile(megabytes) : null;
}

function isNew({ id }: UploadRef, items: readonly Attachment[]): boolean {
  return items.every(({ upload }) => upload.at !== 'ready' || upload.ref.id !== id);
}

/** The files of the message being written; each is uploaded as soon as it is there. */
export function useAttachments(gateway: GatewayClient): Attachments {
  const explain = useExplain();
  const words = useWords().chat.composer;
  const [items, setItems] = useState<readonly Attachment[]>([]);
  const [leftOut, setLeftOut] = useState(0);
  const uploads = useRef(new Map<string, AbortController>());

  useEffect(() => {
    const running = uploads.current;
    return () => {
      for (const upload of running.values()) upload.abort();
    };
  }, []);

  const start = useCallback(
    (file: File): Attachment => {
      const key = randomKey();
      const preview = file.type.startsWith('image/') ? URL.createObjectURL(file) : null;
      const problem = refused(file, words);
      if (problem !== null) return { key, file, preview, upload: { at: 'failed', problem } };
      const controller = new AbortController();
      uploads.current.set(key, controller);
      const settle = (upload: Attachment['upload']): void => {
        uploads.current.delete(key);
        setItems((before) => before.map((item) => (item.key === key ? { ...item, upload } : item)));
      };
      gateway.upload(file, controller.signal).then(
        (ref) => settle({ at: 'ready', ref }),
        (error: unknown) => settle({ at: 'failed', problem: explain(error) }),
      );
      return { key, file, preview, upload: { at: 'uploading' } };
    },
    [gateway, words],
  );

  const drop = useCallback((gone: readonly Attachment[]) => {
    for (const { key, preview } of gone) {
      uploads.current.get(key)?.abort();
      uploads.current.delete(key);
      if (preview !== null) URL.revokeObjectURL(preview);
    }
    setItems((before) => before.filter((item) => !gone.some(({ key }) => key === item.key)));
  }, []);

  const restore = useCallback((refs: readonly UploadRef[]) => {
    const toItem = (ref: UploadRef): Attachment => ({ key: randomKey(), file: ref, preview: null, upload: { at: 'ready', ref } });
    setItems((before) => [...refs.filter((ref) => isNew(ref, before)).map(toItem), ...before].slice(0, limits.attachmentsMax));
  }, []);

  return {
    items,
    leftOut,
    restore,
    add: (files) => {
      const given = [...files];
      const room = Math.max(0, limits.attachmentsMax - items.length);
      const added = given.slice(0, room).map(start);
      setLeftOut(given.length - added.length);
      setItems((before) => [...before, ...added]);
    },
    remove: (key) => {
      setLeftOut(0);
      drop(items.filter((item) => item.key === key));
    },
    take: () => {
      const refs = items.flatMap(({ upload }) => (upload.at === 'ready' ? [upload.ref] : []));
      setLeftOut(0);
      drop(items);
      return refs;
    },
  };
}

function carriesFiles(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes('Files') === true;
}

/** Takes files dropped anywhere on the page. Returns whether some are being dragged over it. */
export function useFileDrop(onFiles: (files: File[]) => void): boolean {
  const [dragging, setDragging] = useState(false);
  const take = useEffectEvent(onFiles);
  useEffect(() => {
    const listeners = new AbortController();
    const listen = { signal: listeners.signal };
    addEventListener(
      'dragover',
      (event) => {
        if (!carriesFiles(event)) return;
        event.preventDefault();
        setDragging(true);
      },
      listen,
    );
    addEventListener(
      'dragleave',
      (event) => {
        // Left the window, not merely one element of it.
        if (event.relatedTarget === null) setDragging(false);
      },
      listen,
    );
    addEventListener(
      'drop',
      (event) => {
        setDragging(false);
        if (!carriesFiles(event)) return;
        event.preventDefault();
        take([...(event.dataTransfer?.files ?? [])]);
      },
      listen,
    );
    return () => {
      listeners.abort();
    };
  }, []);
  return dragging;
}
