#include "coll/mail.h"

#include <stdlib.h>

static bool has_room(hemi_mail *mail, uint32_t size) {
    if (mail->letters != NULL)
        return true;
    mail->room = 2 * size;
    mail->letters = calloc(mail->room, sizeof *mail->letters);
    mail->failed = mail->letters == NULL;
    return !mail->failed;
}

void hemi_mail_begin(hemi_mail *mail, const hemi_collective *c, bool sends, uint32_t peer,
                     void *data, size_t bytes) {
    if (!has_room(mail, c->job.size))
        return;
    hemi_letter *letter = &mail->letters[mail->count++];
    memset(letter, 0, sizeof *letter);
    hemi_letter_init(letter, c->context->world, sends, peer, HEMI_CHANNEL_OWN, data, bytes);
    letter->tag = hemi_mail_tag(c->number);
    hemi_op_begin(&letter->op);
}

hem_status hemi_mail_state(const hemi_mail *mail) {
    hem_status status = HEM_OK;
    if (mail->failed)
        return hemi_fail(HEM_ERR_MEMORY, "no memory for %u messages", mail->room);
    for (uint32_t i = 0; i < mail->count; i++) {
        const hemi_letter *letter = &mail->letters[i];
        if (!hemi_op_is_done(&letter->op))
            status = HEMI_AGAIN;
        else if (letter->op.status != HEM_OK)
            return hemi_op_result(&letter->op);
        else if (!letter->sends && letter->op.bytes != letter->room)
            return hemi_fail(HEM_ERR_MISMATCH, "rank %u sent %zu bytes where %zu were announced",
                             letter->peer, letter->op.bytes, letter->room);
    }
    return status;
}

void hemi_mail_stop(hemi_mail *mail) {
    for (uint32_t i = 0; i < mail->count; i++) {
        struct hem_op *op = &mail->letters[i].op;
        if (op->state == HEMI_OP_RUNNING)
            op->type->cancel(op);
    }
    mail->count = 0;
}

void hemi_mail_free(hemi_mail *mail) {
    free(mail->letters);
    mail->letters = NULL;
}
