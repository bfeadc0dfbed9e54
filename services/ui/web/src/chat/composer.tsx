import { codePoints, limits, uploadTypes, type UploadRef } from '@concierge/contract';
import {
  useEffect,
  useEffectEvent,
  useRef,
  useState,
  type ClipboardEvent,
  type Dispatch,
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
  type SetStateAction,
} from 'react';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { AttachmentChip } from './attachment-chip.tsx';
import { Button, IconButton } from '../parts/button.tsx';
import { ClipIcon, SendIcon, SpinnerIcon, StopIcon } from '../parts/icons.tsx';
import { useKeptWords } from '../sign-in/use-kept-words.ts';
import { useFormats, useWords } from '../words/words.tsx';
import { useAttachments, type Attachments, useFileDrop } from './use-attachments.ts';
import { isWriting, useGrowingField } from './use-growing-field.ts';

/** From here on the length is shown. */
const COUNT_FROM = limits.messageMaxCharacters * 0.9;

export interface Draft {
  readonly text: string;
  readonly attachments: readonly UploadRef[];
  /** A message that comes back goes before what stands in the field; other words replace it. */
  readonly comesBack: boolean;
  /** A new one is put into the field. */
  readonly version: number;
}

export interface ComposerProps extends FieldProps {
  readonly gateway: GatewayClient;
  readonly draft: Draft;
  /** Shown instead of the field while staff has the conversation; null: nothing is. */
  readonly inItsPlace: ReactNode;
}

interface FieldProps {
  /** Not while an answer of staff is unsent: its next letters are not for the agent. */
  readonly takesFocus: boolean;
  readonly placeholder: string;
  readonly disabled: boolean;
  /** A turn is under way: what is sent now waits, and the running one can be stopped. */
  readonly busy: boolean;
  readonly stopping: boolean;
  readonly onSend: (text: string, attachments: UploadRef[]) => void;
  /** Null while there is nothing that could be stopped. */
  readonly onStop: (() => void) | null;
}

/**
 * Where a message to the agent is written. What is written stays while staff has the conversation and the field is
 * gone, with its files and their uploads.
 */
export function Composer({ gateway, draft, inItsPlace, ...field }: ComposerProps): ReactNode {
  const message = useUnsentMessage(gateway, draft);
  if (inItsPlace === null) return <MessageField {...field} message={message} drafts={draft.version} />;
  return (
    <>
      <KeptHint message={message} />
      {inItsPlace}
    </>
  );
}

interface UnsentMessage {
  readonly text: string;
  readonly setText: Dispatch<SetStateAction<string>>;
  readonly attachments: Attachments;
}

function useUnsentMessage(gateway: GatewayClient, draft: Draft): UnsentMessage {
  const [text, setText] = useState('');
  const attachments = useAttachments(gateway);
  const { restore } = attachments;
  useKeptWords(text);
  // Puts each new draft into the message.
  useEffect(() => {
    if (draft.version === 0) return;
    setText((before) => (draft.comesBack && before.trim() !== '' ? `${draft.text}\n\n${before}` : draft.text));
    restore(draft.attachments);
  }, [draft, restore]);
  return { text, setText, attachments };
}

/** Says where the message to the agent is while staff answers in the agent's place. */
function KeptHint({ message: { text, attachments } }: { readonly message: UnsentMessage }): ReactNode {
  const words = useWords().chat.composer;
  if (text.trim() === '' && attachments.items.length === 0) return null;
  return (
    <p role="status" className="mx-auto mb-2 w-full max-w-3xl px-5 text-sm text-muted-foreground">
      {words.kept}
    </p>
  );
}

interface MessageFieldProps extends FieldProps {
  readonly message: UnsentMessage;
  /** How many drafts were put into it so far. */
  readonly drafts: number;
}

function MessageField({ message, drafts, ...props }: MessageFieldProps): ReactNode {
  const words = useWords().chat.composer;
  const { disabled, busy, stopping, onSend, onStop } = props;
  const { text, setText, attachments } = message;
  // Gone with the field: what was sent to the agent does not go by itself once staff has answered.
  const [held, setHeld] = useState(false);
  const field = useGrowingField(text);
  const dropping = useFileDrop(attachments.add);
  useNewDraft(drafts, () => {
    // Other words are to be sent by another press.
    setHeld(false);
    field.current?.focus();
  });
  useFirstFocus(field, props);

  const length = codePoints(text);
  const uploading = attachments.items.some(({ upload }) => upload.at === 'uploading');
  // A file that failed is for the user to decide on: a message must not go without it unnoticed.
  const failed = attachments.items.some(({ upload }) => upload.at === 'failed');
  const sendable = !disabled && !failed && text.trim() !== '' && length <= limits.messageMaxCharacters;

  const send = (isByUser = true): void => {
    if (!sendable) return;
    if (isByUser) field.current?.focus();
    setHeld(uploading);
    if (uploading) return;
    onSend(text.trim(), attachments.take());
    setText('');
  };
  // What was sent while a file was on its way goes when the file is there, wherever the focus is by then.
  const sendHeld = useEffectEvent(() => {
    setHeld(false);
    send(false);
  });
  useEffect(() => {
    if (held && !uploading) sendHeld();
  }, [held, uploading]);
  const onKeyDown = (event: KeyboardEvent): void => {
    // While a word is being composed (Japanese, Chinese …) Enter belongs to the input method.
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      send();
    }
    // Held down, it is meant for the turn that ran when it was pressed.
    if (event.key === 'Escape' && !event.repeat && onStop !== null && !stopping) onStop();
  };
  const onPaste = (event: ClipboardEvent): void => {
    const files = [...event.clipboardData.files];
    if (files.length === 0) return;
    event.preventDefault();
    attachments.add(files);
  };

  return (
    <form
      className="mx-auto w-full max-w-3xl px-3 pb-[max(0.75rem,env(safe-area-inset-bottom))] sm:px-5"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {dropping && <DropHint />}
      <div className="rounded-2xl border border-input bg-card shadow-sm focus-within:border-ring focus-within:ring-1 focus-within:ring-ring">
        <AttachmentRow attachments={attachments} />
        <LeftOut count={attachments.leftOut} />
        <textarea
          ref={field}
          aria-label={words.message}
          aria-describedby="composer-hint"
          rows={1}
          placeholder={props.placeholder}
          disabled={disabled}
          className="block max-h-[40vh] w-full resize-none bg-transparent px-4 pt-3 pb-1 outline-none placeholder:text-muted-foreground"
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setHeld(false);
          }}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
        />
        <Toolbar {...{ attachments, busy, disabled, length, onStop, sendable, stopping, held, failed }} />
      </div>
    </form>
  );
}

/** As soon as it can be written in. */
function useFirstFocus(field: RefObject<HTMLTextAreaElement | null>, { disabled, takesFocus }: FieldProps): void {
  const focus = useEffectEvent(() => {
    // On a touch screen the focus would bring up the keyboard before the user wants to write.
    if (takesFocus && matchMedia('(pointer: fine)').matches && !isWriting()) field.current?.focus();
  });
  useEffect(() => {
    if (!disabled) focus();
  }, [disabled]);
}

/** Not for a draft from before the field was there: the user has gone on since. */
function useNewDraft(drafts: number, onNew: () => void): void {
  const seen = useRef(drafts);
  const take = useEffectEvent(onNew);
  useEffect(() => {
    if (seen.current === drafts) return;
    seen.current = drafts;
    take();
  }, [drafts]);
}

interface ToolbarProps extends Pick<FieldProps, 'busy' | 'disabled' | 'onStop' | 'stopping'> {
  readonly attachments: Attachments;
  readonly length: number;
  readonly sendable: boolean;
  /** Sent, and waiting for a file that is being uploaded. */
  readonly held: boolean;
  readonly failed: boolean;
}

function Toolbar({ attachments, busy, disabled, length, onStop, sendable, stopping, held, failed }: ToolbarProps): ReactNode {
  const words = useWords().chat.composer;
  const afterwards = busy ? words.sendWaits : words.send;
  return (
    <div className="flex items-center gap-1.5 p-2">
      <AttachButton attachments={attachments} disabled={disabled} />
      <Hint busy={busy} length={length} failed={failed} />
      {onStop !== null && <StopButton stopping={stopping} onStop={onStop} />}
      <IconButton
        type="submit"
        tone="primary"
        label={held ? words.sendHeld : afterwards}
        className="rounded-xl!"
        disabled={!sendable || held}
      >
        {held ? <SpinnerIcon /> : <SendIcon />}
      </IconButton>
    </div>
  );
}

interface StopButtonProps extends Pick<FieldProps, 'stopping'> {
  readonly onStop: () => void;
}

/** Stops the turn that runs when it is pressed: the next one may have taken its place when the key or button is up. */
function StopButton({ stopping, onStop }: StopButtonProps): ReactNode {
  const words = useWords().chat.composer;
  const meant = useRef<(() => void) | null>(null);
  const press = (): void => {
    meant.current = onStop;
  };
  const release = (): void => {
    meant.current = null;
  };
  return (
    <Button
      className="rounded-xl"
      disabled={stopping}
      onPointerDown={press}
      onKeyDown={(event) => {
        if (event.repeat) event.preventDefault();
        else press();
      }}
      onBlur={release}
      onClick={() => {
        // Assistive technology may click without a press.
        (meant.current ?? onStop)();
        release();
      }}
    >
      <StopIcon className="size-3.5" />
      {stopping ? words.stopping : words.stop}
    </Button>
  );
}

function Hint({ busy, length, failed }: Pick<ToolbarProps, 'busy' | 'length' | 'failed'>): ReactNode {
  const words = useWords().chat.composer;
  const formats = useFormats();
  const over = length > limits.messageMaxCharacters;
  const count = words.count(formats.number(length), formats.number(limits.messageMaxCharacters));
  return (
    <p
      id="composer-hint"
      className={`min-w-0 flex-1 truncate text-xs tabular-nums ${over || failed ? 'text-danger' : 'text-muted-foreground'}`}
    >
      {failed && words.failedFile}
      {!failed && length > COUNT_FROM && (over ? words.tooLong(count) : count)}
      {!failed && length <= COUNT_FROM && <span className="pointer-coarse:hidden">{busy ? words.hintBusy : words.hint}</span>}
    </p>
  );
}

/** How many files did not fit. */
function LeftOut({ count }: { readonly count: number }): ReactNode {
  const words = useWords().chat.composer;
  if (count === 0) return null;
  return (
    <p role="alert" className="px-4 pt-2 text-xs text-danger">
      {words.leftOut(count, limits.attachmentsMax)}
    </p>
  );
}

function AttachmentRow({ attachments }: { readonly attachments: Attachments }): ReactNode {
  const words = useWords().chat.composer;
  if (attachments.items.length === 0) return null;
  return (
    <ul aria-label={words.attachments} className="flex flex-wrap gap-2 px-3 pt-3">
      {attachments.items.map(({ key, file, preview, upload }) => (
        <AttachmentChip
          key={key}
          name={file.name}
          size={file.size}
          isImage={file.type.startsWith('image/')}
          preview={preview}
          state={upload.at}
          problem={upload.at === 'failed' ? upload.problem : null}
          onRemove={() => attachments.remove(key)}
        />
      ))}
    </ul>
  );
}

function AttachButton({ attachments, disabled }: { readonly attachments: Attachments; readonly disabled: boolean }): ReactNode {
  const words = useWords().chat.composer;
  const picker = useRef<HTMLInputElement>(null);
  const full = attachments.items.length >= limits.attachmentsMax;
  return (
    <>
      <input
        ref={picker}
        type="file"
        multiple
        hidden
        accept={[...uploadTypes, '.txt', '.md', '.csv', '.json', '.log'].join(',')}
        onChange={(event) => {
          attachments.add(event.target.files ?? []);
          event.target.value = '';
        }}
      />
      <IconButton
        label={full ? words.full(limits.attachmentsMax) : words.attach}
        disabled={disabled || full}
        onClick={() => picker.current?.click()}
      >
        <ClipIcon />
      </IconButton>
    </>
  );
}

function DropHint(): ReactNode {
  const words = useWords().chat.composer;
  return (
    <div className="pointer-events-none fixed inset-0 z-40 flex items-center justify-center bg-background/80">
      <p className="rounded-2xl border-2 border-dashed border-primary px-8 py-6 font-medium">{words.drop}</p>
    </div>
  );
}
